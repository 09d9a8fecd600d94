package causes

var awsRules = []rule{}
