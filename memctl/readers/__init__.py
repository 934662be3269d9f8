"""Files become text with positions; the only room that knows file formats."""
