package root

import "testing"

// TestGolden_Capacity: max-pods by every rule, of one type with its terms and of several.
func TestGolden_Capacity(t *testing.T) {
	t.Parallel()
	checkGoldens(t, newWorld(t), map[string]call{
		"help":           {args: "capacity --help"},
		"type":           {args: "capacity type m5.large"},
		"type-tty-80":    {args: "capacity type p5.48xlarge --pod-eni --custom-networking --explain", env: size("80")},
		"type-ipv6":      {args: "capacity type m5.large --ipv6"},
		"type-unlisted":  {args: "capacity type i3.metal --explain --rule eni-max-pods,nodeadm,karpenter,cnictl"},
		"type-vcpus":     {args: "capacity type cr1.8xlarge"},
		"type-given":     {args: "capacity type cr1.8xlarge --vcpus 32 --rule calculator,cnictl"},
		"type-json":      {args: "capacity type m5.metal --prefix-delegation --max-eni 0 -o json"},
		"types":          {args: "capacity type m5.large c6g.medium m5.24xlarge --sort-by cnictl"},
		"types-csv":      {args: "capacity type m5.large m5.24xlarge -o csv"},
		"types-name":     {args: "capacity type --all --filter type=m7g.* -o name"},
		"expression":     {args: "capacity type t3.medium --rule nodeadm --max-pods-expression max_pods<10?10:default_enis"},
		"expression-bad": {args: "capacity type m5.large --max-pods-expression max_pod"},
		"expression-nil": {args: "capacity type m5.large --rule nodeadm --max-pods-expression max_pods/0"},
		"unknown":        {args: "capacity type m5.larg"},
		"rule-unknown":   {args: "capacity type m5.large --rule bottlerocket"},
		"ipv6-custom":    {args: "capacity type m5.large --ipv6 --custom-networking"},
		"negative":       {args: "capacity type m5.large --max-eni -1"},
		"version-bad":    {args: "capacity type m5.large --cni-version 1"},
		"subnet":         {args: "capacity subnet 10.0.0.0/22 --type m5.large --pods 20"},
		"subnet-prefix":  {args: "capacity subnet 10.0.0.0/20 10.0.16.0/20 --type m5.4xlarge --pods 50 --prefix-delegation --used 120"},
		"subnet-custom":  {args: "capacity subnet 100.64.0.0/18 --node-subnet 10.0.0.0/24 --type c5.xlarge --pods 40 --custom-networking -o json"},
		"subnet-csv":     {args: "capacity subnet 10.0.0.0/20 --type m5.large --pods 8 --prefix-delegation -o csv"},
		"subnet-tiny":    {args: "capacity subnet 10.0.0.0/30 --type m5.large --pods 2"},
		"subnet-bits":    {args: "capacity subnet 10.0.0.1/24 --type m5.large --pods 2"},
		"subnet-twice":   {args: "capacity subnet 10.0.0.0/24 10.0.0.0/24 --type m5.large --pods 2"},
		"subnet-many":    {args: "capacity subnet 10.0.0.0/24 --type m5.large --pods 200"},
		"subnet-stops":   {args: "capacity subnet 10.0.0.0/24 --type m5.large --pods 20 --max-pods 10"},
		"subnet-xen":     {args: "capacity subnet 10.0.0.0/24 --type m4.large --pods 5 --prefix-delegation --pod-eni"},
		"subnet-no-type": {args: "capacity subnet 10.0.0.0/24 --pods 2"},
		"subnet-minus":   {args: "capacity subnet 10.0.0.0/24 --type m5.large --pods 2 --warm-ip-target -1"},
		"nothing":        {args: "capacity type"},
		"whatif-help":    {args: "capacity whatif --help"},
		"whatif":         {args: "capacity whatif --type m5.large --pods 20 --count 50 --warm-ip-target 2 --rate 5", env: size("140")},
		"whatif-theirs":  {args: "capacity whatif --type m5.large --pods 20 --set WARM_IP_TARGET=1 --for 2h --model original -o csv"},
		"whatif-json":    {args: "capacity whatif --type m5.large --pods 8 --today WARM_ENI_TARGET=0 --set MINIMUM_IP_TARGET=12 --for 1h -o json"},
		"whatif-dry":     {args: "capacity whatif --type m5.large --pods 8 --count 2 --arrivals testdata/arrivals.jsonl --subnet-free 10"},
		"whatif-line":    {args: "capacity whatif --type m5.large --pods 8 --arrivals testdata/arrivals-bad.jsonl"},
		"whatif-no-file": {args: "capacity whatif --type m5.large --pods 8 --arrivals testdata/none.jsonl"},
		"whatif-set":     {args: "capacity whatif --type m5.large --pods 8 --set WARM_IP_TARGETS=2"},
		"whatif-value":   {args: "capacity whatif --type m5.large --pods 8 --set ENABLE_POD_ENI=perhaps"},
		"whatif-room":    {args: "capacity whatif --type m5.large --pods 28"},
		"whatif-nothing": {args: "capacity whatif"},
		"whatif-both":    {args: "capacity whatif --all --type m5.large --pods 2"},
	})
}
