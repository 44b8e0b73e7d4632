def text(*a): return ""
