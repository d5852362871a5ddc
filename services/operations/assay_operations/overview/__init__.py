"""Read whether everything works, for the frame of each page and the overview."""
