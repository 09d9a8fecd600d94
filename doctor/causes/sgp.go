package causes

var sgpRules = []rule{}
