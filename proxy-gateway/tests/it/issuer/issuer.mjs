// An issuer of tokens that others wrote, and a second port at which the test gets tokens and has keys replaced.
import { createServer } from 'node:http';
import { OAuth2Issuer, OAuth2Server } from 'oauth2-mock-server';

const ALGORITHMS = ['RS256', 'PS384', 'ES256', 'EdDSA'];

const server = new OAuth2Server();
// Another issuer with the same names of keys.
const forger = new OAuth2Issuer();
for (const alg of ALGORITHMS) {
  await server.issuer.keys.generate(alg, { kid: alg });
  await forger.keys.generate(alg, { kid: alg });
}
await server.start(0, '127.0.0.1');
server.issuer.url = forger.url = `http://127.0.0.1:${server.address().port}`;

// GET /token?kid=RS256&aud=orders&expires=60&forged=1, GET /replace?alg=RS256&kid=new
async function answer(url) {
  const asked = url.searchParams;
  if (url.pathname === '/replace') {
    await server.issuer.keys.generate(asked.get('alg'), { kid: asked.get('kid') });
    return 'replaced';
  }
  const issuer = asked.has('forged') ? forger : server.issuer;
  return issuer.buildToken({
    kid: asked.get('kid'),
    expiresIn: Number(asked.get('expires') ?? 600),
    scopesOrTransform: (_, payload) => {
      payload.sub = 'ann';
      payload.aud = asked.get('aud') ?? 'orders';
      payload.iss = asked.get('iss') ?? payload.iss;
      payload.scope = asked.get('scope') ?? 'orders.read';
    },
  });
}

const control = createServer((request, response) => {
  answer(new URL(request.url, 'http://control')).then(
    (text) => response.end(text),
    (error) => response.writeHead(500).end(String(error)),
  );
});
control.listen(0, '127.0.0.1', () => {
  console.log(`control on http://127.0.0.1:${control.address().port}`);
  console.log(`issuer on ${server.issuer.url}`);
});
