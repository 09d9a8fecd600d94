package causes

var netRules = []rule{}
