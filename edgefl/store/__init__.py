"""A run on disk: ``plan.yaml``, ``run.sqlite``, ``host.json`` and safetensors files of versions and states.

Rows are committed at every merge, together with the names and SHA-256 of the files they refer to. Files are
immutable and written under a temporary name first; a file that no row refers to is deleted only after the
commit. A run that ended has the SHA-256 of each of its files: the database's is checked when it is opened,
the others' when they are read. Nothing is pickled.
"""
