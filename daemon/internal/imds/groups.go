package imds

import (
	"context"
	"fmt"
)

// SecurityGroups reads an interface's security groups in one request. Every interface
// has at least one, so an empty list is an error, as is a 404.
func (c *Client) SecurityGroups(ctx context.Context, mac string) ([]string, error) {
	path, err := pathOf(mac, "security-group-ids")
	if err != nil {
		return nil, err
	}
	body, err := c.need(ctx, path)
	if err != nil {
		return nil, err
	}
	groups, err := parseGroups(path, body)
	if err == nil && len(groups) == 0 {
		err = &AnswerError{path, body, "at least one security group"}
	}
	return groups, err
}

const maxGroups = 64 // of one interface; EC2's highest quota is 16

func parseGroups(path, s string) ([]string, error) {
	lines, err := parseLines(path, s)
	if err != nil {
		return nil, err
	}
	if len(lines) > maxGroups {
		return nil, &AnswerError{path, fmt.Sprintf("%d lines", len(lines)), fmt.Sprintf("at most %d security groups", maxGroups)}
	}
	for _, id := range lines {
		if _, err := parseID(path, "sg-", id); err != nil {
			return nil, err
		}
	}
	return lines, nil
}
