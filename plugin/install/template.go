package install

// Template is the conflist template of the image, /app/10-aws.conflist
// (spec/plugin.md §1.1–1.3).
const Template = `{
  "cniVersion": "0.4.0",
  "name": "aws-cni",
  "disableCheck": true,
  "plugins": [
    {
      "name": "aws-cni",
      "type": "aws-cni",
      "vethPrefix": "__VETHPREFIX__",
      "mtu": "__MTU__",
      "podSGEnforcingMode": "__PODSGENFORCINGMODE__",
      "pluginLogFile": "__PLUGINLOGFILE__",
      "pluginLogLevel": "__PLUGINLOGLEVEL__",
      "capabilities": {"io.kubernetes.cri.pod-annotations": true}
    },
    {
      "name": "egress-cni",
      "type": "egress-cni",
      "mtu": "__MTU__",
      "enabled": "__EGRESSPLUGINENABLED__",
      "randomizeSNAT": "__RANDOMIZESNAT__",
      "nodeIP": "__NODEIP__",
      "ipam": {
        "type": "host-local",
        "ranges": [[{"subnet": "__EGRESSPLUGINIPAMSUBNET__"}]],
        "routes": [{"dst": "__EGRESSPLUGINIPAMDST__"}],
        "dataDir": "__EGRESSPLUGINIPAMDATADIR__"
      },
      "pluginLogFile": "__EGRESSPLUGINLOGFILE__",
      "pluginLogLevel": "__PLUGINLOGLEVEL__"
    },
    {
      "type": "portmap",
      "capabilities": {"portMappings": true},
      "snat": true
    }
  ]
}
`

// Plugins that are chained behind a template's when a setting says so, without the
// indent of the list.
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
