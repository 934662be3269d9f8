"""Who and what is named where, as a graph; read from memories, so that it follows every change."""
