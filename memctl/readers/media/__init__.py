"""Images, recordings, videos and their subtitles."""
