"""What stands behind the verbs of the command line, one file for each."""
