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
		"nothing":        {args: "capacity type"},
	})
}
