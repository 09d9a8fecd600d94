package causes

var npRules = []rule{}
