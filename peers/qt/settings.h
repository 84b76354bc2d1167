#pragma once

// Answers `settings`: how Qt GRPC is used, and its defaults that matter; a line each of SIDE, NAME, VALUE and WHY.
void PrintSettings();
