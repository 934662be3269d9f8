"""The resident process: commands that read are carried out by a process that is warm already."""
