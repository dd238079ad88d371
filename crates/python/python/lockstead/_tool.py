Watch = dump = watch = None
