"""What is made from a saved model: an ONNX graph, and a card for people."""
