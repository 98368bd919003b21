// A free port, for a program that must know its port before it opens it. Another program may take it in between: then
// the start fails with that message, and the next one gets another.
import { Effect } from "effect"
import { type AddressInfo, createServer } from "node:net"

export const freePort: Effect.Effect<number> = Effect.callback<number>((resume) => {
  const server = createServer().once("error", (error) => resume(Effect.die(error)))
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})
