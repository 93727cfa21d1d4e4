"""What a CI service shows: annotations of lines, a comment on a pull request, the summary of a job."""
