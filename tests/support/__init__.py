"""What tests begin with: servers, processes, samples and ways to wait. Nothing here is shipped."""
