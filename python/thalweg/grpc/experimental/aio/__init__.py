"""The former name of `grpc.aio`."""

from thalweg.grpc.aio import *
