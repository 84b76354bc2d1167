#pragma once

// Prints `settings`: how Qt GRPC is used and the defaults that matter, a line each with SIDE, NAME, VALUE and WHY.
void PrintSettings();
