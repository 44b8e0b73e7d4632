SCHEMES = {}
def check(*a): pass
