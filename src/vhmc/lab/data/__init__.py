"""Data of the experiments: a file given, a data folder, a download or a stand-in."""
