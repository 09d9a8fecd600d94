package sim

import (
	"slices"
	"time"
)

// live makes pods come and go on the node.
func (n *node) live() {
	w, d := n.w, n.w.dice.pods
	w.begin(func() {
		for !w.settling {
			w.sleep(d.span(0, 2*n.spec.Gap))
			if w.settling {
				return
			}
			n.stirPods()
		}
	})
}

// stirPods creates or deletes a few pods.
func (n *node) stirPods() {
	d := n.w.dice.pods
	wanted := 0
	for _, p := range n.pods {
		if !p.doomed {
			wanted++
		}
	}
	switch burst := d.Below(100); {
	case burst < 2: // a deployment is deleted
		for _, p := range slices.Clone(n.pods) {
			if d.chance(0.7) {
				p.doom()
			}
		}
	case burst < 6: // a deployment is created
		for range n.spec.Pods - wanted {
			n.newPod("", n.lifetime())
		}
	case wanted < n.spec.Pods && !n.cordoned:
		n.newPod(n.nameOfNext(), n.lifetime())
	}
}

// nameOfNext is usually new; some pods return under their old name immediately.
func (n *node) nameOfNext() string {
	d := n.w.dice.pods
	if len(n.pods) == 0 || !d.chance(0.15) {
		return ""
	}
	name := n.pods[d.Below(len(n.pods))].name
	for _, p := range n.pods {
		if p.name == name && !p.ending {
			p.doom()
			return "" // its successor may come as soon as the pod is being deleted
		}
	}
	return name
}

func (n *node) lifetime() time.Duration {
	d := n.w.dice.pods
	return d.span(n.spec.Life/5, 2*n.spec.Life)
}
