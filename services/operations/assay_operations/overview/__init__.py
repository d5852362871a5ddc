"""Whether everything works: what the frame of each page and the overview show."""
