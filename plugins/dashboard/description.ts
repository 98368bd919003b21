// The routes of the dashboard for /openapi.json; pages and their files are not an interface, and are left out.
import type { Described } from "../../kernel/http/OpenApi.ts"
import { About } from "./AboutWire.ts"

export const described: Described = {
  tags: { dashboard: "What the pages ask, beside the other routes." },
  routes: [
    {
      method: "get",
      path: "/dashboard/v1/about",
      id: "about",
      summary: "What this facilitator is and takes.",
      tag: "dashboard",
      callers: "anybody",
      answers: { 200: { description: "What anybody may know.", body: About } }
    }
  ]
}
