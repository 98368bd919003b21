// Pins the base images of the Dockerfile and the Compose file to the digests that their tags have now, or renews them:
//
//   node runtime/deploy/pinImages.mjs           prints each image with its digest, and changes nothing
//   node runtime/deploy/pinImages.mjs --write   writes `image:tag@sha256:…` in place of `image:tag` or an older digest
//
// It asks Docker Hub's registry without credentials. Build and test before you commit what it wrote; a pinned image
// gets no security updates until it is renewed.
import { readFileSync, writeFileSync } from "node:fs"
import process from "node:process"
import { fileURLToPath } from "node:url"

const files = ["Dockerfile", "compose.yaml"].map((name) => fileURLToPath(new URL(name, import.meta.url)))
/** `ARG …_IMAGE=name:tag[@digest]` and `image: name:tag[@digest]`, of other registries' names none. */
const used = /(?<=^ARG \w+_IMAGE=|^ {4}image: )(?!tollkeeper:)([a-z0-9_./-]+):([\w.-]+)(?:@(sha256:[0-9a-f]{64}))?$/gm
const kinds = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json"
]

/** The digest of a tag, for every architecture. */
const digestOf = async (name, tag) => {
  const repository = name.includes("/") ? name : `library/${name}`
  const scope = `repository:${repository}:pull`
  const { token } = await (await fetch(`https://auth.docker.io/token?service=registry.docker.io&scope=${scope}`)).json()
  const answer = await fetch(`https://registry-1.docker.io/v2/${repository}/manifests/${tag}`, {
    method: "HEAD",
    headers: { authorization: `Bearer ${token}`, accept: kinds.join(", ") }
  })
  const digest = answer.headers.get("docker-content-digest")
  if (!answer.ok || digest === null) throw new Error(`${name}:${tag}: the registry answers ${answer.status}`)
  return digest
}

for (const file of files) {
  let text = readFileSync(file, "utf8")
  for (const [whole, name, tag, before] of text.matchAll(used)) {
    const digest = await digestOf(name, tag)
    const state = before === undefined ? "not pinned" : before === digest ? "current" : "outdated"
    console.log(`${name}:${tag}@${digest}  (${state})`)
    text = text.replaceAll(whole, `${name}:${tag}@${digest}`)
  }
  if (process.argv.includes("--write")) writeFileSync(file, text)
}
