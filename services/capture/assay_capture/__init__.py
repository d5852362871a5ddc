"""The producers' SDK: captures events without slowing or breaking the caller."""

from assay_capture.capture import Capture
from assay_capture.stats import CaptureStats
from assay_schema.settings import SettingsError

__all__ = ["Capture", "CaptureStats", "SettingsError"]
