"""From a run to a device: verified ONNX files, and their cost there."""
