// A port that nobody listens on, for what must know its port before it opens it. Another program may take it in
// between: then the start says so, and the next one has another.
import { Effect } from "effect"
import { type AddressInfo, createServer } from "node:net"

export const freePort: Effect.Effect<number> = Effect.callback<number>((resume) => {
  const server = createServer().once("error", (error) => resume(Effect.die(error)))
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})
