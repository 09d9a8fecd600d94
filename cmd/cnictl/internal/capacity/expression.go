package capacity

import (
	"fmt"
	"math"

	"cel.dev/cel-go/cel"
)

// compile compiles a maxPodsExpression as nodeadm does: CEL over default_enis, ips_per_eni
// and max_pods, whose result is an integer above 0.
func compile(text string) (func(defaultENIs, ipsPerENI, maxPods int) (int, error), error) {
	env, err := cel.NewEnv(cel.Variable("default_enis", cel.IntType), cel.Variable("ips_per_eni", cel.IntType),
		cel.Variable("max_pods", cel.IntType))
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	for _, issue := range issues.Errors() {
		return nil, fmt.Errorf("column %d: %s", issue.Location.Column()+1, issue.Message)
	}
	program, err := env.Program(ast)
	if err != nil {
		return nil, err
	}
	return func(defaultENIs, ipsPerENI, maxPods int) (int, error) {
		out, _, err := program.Eval(map[string]any{"default_enis": defaultENIs, "ips_per_eni": ipsPerENI, "max_pods": maxPods})
		if err != nil {
			return 0, err
		}
		n, ok := out.ConvertToType(cel.IntType).Value().(int64)
		if !ok || n < 1 || n > math.MaxInt32 {
			return 0, fmt.Errorf("the result is %v: want an integer above 0", out.Value())
		}
		return int(n), nil
	}, nil
}
