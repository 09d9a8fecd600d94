package causes

var configRules = []rule{}
