"""The commands, a module each; a folder is a group."""
