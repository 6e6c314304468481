"""The one model: prepared rows, members and weights; fitting, predicting, scoring."""
