"""Collection of the items' answers: targets, engines, and the models that classify, score or embed answers."""
