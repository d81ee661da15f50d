"""Codecs of payloads, one file each."""
