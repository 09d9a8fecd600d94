package causes

var cfgnetRules = []rule{}
