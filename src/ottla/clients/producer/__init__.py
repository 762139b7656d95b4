"""Writing records: interceptors, serializers, partitioner, accumulator, sender."""
