"""What capture refuses, in words for its user."""

from lake.protocol.errors import UserError


class CaptureError(UserError):
    """The source or the raw table isn't fit for capture, or has become unfit; the message says what to do."""


class SlotLost(CaptureError):
    """The log of changes that weren't captured yet is gone. Only a new snapshot brings the tables back in step."""


class AnotherCapture(CaptureError):
    """Another process captures the same source into the same table."""
