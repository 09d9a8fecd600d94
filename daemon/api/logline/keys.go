package logline

// Keys of log lines. A line uses no other keys: people and log queries rely on one word for
// one thing. Sandbox ids appear in debug lines only.
const (
	KeyAccount      = "account"  // an AWS account
	KeyAction       = "action"   // an EC2 action, or one of a plan
	KeyActions      = "actions"  // how many
	KeyAddr         = "addr"     // a listening address
	KeyAttempt      = "attempt"  // counted from 1
	KeyBackend      = "backend"  // "nftables" or "iptables"
	KeyCause        = "cause"    // a code of daemon/api/cause
	KeyCIDRs        = "cidrs"    // ranges, as text
	KeyCluster      = "cluster"  // cluster name
	KeyCode         = "code"     // an EC2 error code
	KeyCount        = "count"    // of what the message names
	KeyDetail       = "detail"   // one sentence for people
	KeyDevice       = "device"   // device index of an ENI on its card
	KeyDuration     = "duration" // "1.5s"
	KeyENI          = "eni_id"   // "eni-…"
	KeyENIConfig    = "eni_config"
	KeyError        = "error"         // text of an error
	KeyField        = "field"         // of a document
	KeyIfName       = "if_name"       // interface inside the pod
	KeyInstance     = "instance_id"   // "i-…"
	KeyInstanceType = "instance_type" // "m5.large"
	KeyIP           = "ip"            // one address
	KeyLine         = "line"          // of a rule set
	KeyLink         = "link"          // a network link of the node
	KeyMAC          = "mac"
	KeyMode         = "mode"         // "secondary-ip", "prefix"
	KeyMTU          = "mtu"          // bytes
	KeyNamespace    = "namespace"    // of a pod
	KeyNetns        = "netns"        // path
	KeyNetworkCard  = "network_card" // index
	KeyNode         = "node"
	KeyPath         = "path" // a file or socket
	KeyPod          = "pod"
	KeyPrefix       = "prefix"      // a /28 or /80
	KeyProvider     = "provider"    // of AWS credentials, as the SDK names it
	KeyReason       = "reason"      // of a planned action, or of a DEL
	KeyRegion       = "region"      // AWS region
	KeyRequest      = "request"     // an RPC or HTTP request
	KeyRole         = "role"        // an IAM role, its name or ARN
	KeyRouteTable   = "route_table" // number
	KeySandbox      = "sandbox_id"  // CNI container id
	KeySetting      = "setting"     // an environment variable
	KeySignal       = "signal"
	KeyStatus       = "status"    // of an HTTP answer or a process
	KeySubnet       = "subnet_id" // "subnet-…"
	KeyTable        = "table"     // of rules
	KeyUntil        = "until"     // a time
	KeyUnplaced     = "unplaced"  // allocations whose CIDR is unknown
	KeyValue        = "value"     // of a setting
	KeyVersion      = "version"
	KeyVPC          = "vpc_id"
	KeyAddresses    = "addresses"    // how many addresses an operation affects
	KeyEvent        = "event"        // of the address book
	KeyRecovered    = "recovered"    // allocations rebuilt from the kernel
	KeyServer       = "server"       // of this process
	KeySource       = "source"       // where a value was read
	KeyStale        = "stale"        // allocations whose pod is gone
	KeyWaiting      = "waiting"      // ADDs waiting for an address
	KeyIPTables     = "iptables"     // version as the program reports it
	KeyProgram      = "program"      // a program that was run
	KeyRandomFully  = "random_fully" // whether SNAT can use --random-fully
	KeyRule         = "rule"         // a policy routing rule, as ip prints it
	KeyScript       = "script"       // input of a program

	// Totals of the pool.
	KeyAssigned = "assigned"
	KeyCooling  = "cooling"
	KeyENIs     = "enis"
	KeyFree     = "free"
	KeyPrefixes = "prefixes"
	KeyTotal    = "total"
)
