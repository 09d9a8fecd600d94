package imds

import "context"

// SecurityGroups reads the security groups of the interface with that MAC: one request.
func (c *Client) SecurityGroups(ctx context.Context, mac string) ([]string, error) {
	path := macsPath + mac + "/security-group-ids"
	body, err := c.need(ctx, path)
	if err != nil {
		return nil, err
	}
	return parseGroups(path, body)
}
