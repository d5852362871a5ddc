"""Labels of people on judged answers, in the store: sampled, given blind, compared with each other and with the judge."""
