package causes

var eniRules = []rule{}
