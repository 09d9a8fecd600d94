package causes

var bootRules = []rule{}
