package auth_test

import (
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"headcount/auth"
)

func Example() {
	keys := new(auth.Keys)
	// openssl rand -base64 32
	for _, err := range keys.AddList([]string{"site-1:HS256:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}) {
		fmt.Println(err)
	}
	tokens := auth.New(auth.Options{Keys: keys})

	// The site's backend.
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"vid": "10001", "sub": "u1", "exp": time.Now().Add(6 * time.Hour).Unix(),
	})
	token.Header["kid"] = "site-1"
	signed, err := token.SignedString([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(tokens.Verify(signed))
	fmt.Println(tokens.Verify(signed[1:]))
	// Output:
	// 10001 u1 <nil>
	//   not a JWT whose claims have the right types
}
