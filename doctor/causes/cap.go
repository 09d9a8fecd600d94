package causes

var capRules = []rule{}
