package install

import _ "embed" // of the template

// Template is the conflist template of the image, /app/10-aws.conflist, with upstream's
// placeholders. It is a file, so that images can be built from it.
//
//go:embed 10-aws.conflist
var Template string

// Plugins that a setting chains after the template's, without the indent of the list.
const (
	bandwidthPlugin = `{
  "type": "bandwidth",
  "capabilities": {"bandwidth": true}
}`
	tuningPlugin = `{
  "type": "tuning",
  "sysctl": {
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
    "net.ipv6.conf.lo.disable_ipv6": "1"
  }
}`
)
