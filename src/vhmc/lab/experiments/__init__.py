"""The paper's experiments, each from settings to a folder of figures and numbers."""
