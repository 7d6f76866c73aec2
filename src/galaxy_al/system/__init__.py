"""The machine: files, folders, downloads, locks and threads."""
