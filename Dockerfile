# One build, four images: `docker build --target ingest|worker|lookup|ops .`
FROM node:24.21.0-slim AS build
WORKDIR /app
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
RUN npm install --global "$(node -p 'require("./package.json").packageManager')"
COPY . .
# With optional packages: the compiler and turbo are among them.
RUN pnpm install --frozen-lockfile
RUN pnpm exec turbo run build
# Without them: Node is the image's own.
RUN for app in ingest worker lookup ops; do pnpm --filter "@booking-events/$app" deploy --prod --no-optional "/out/$app"; done

FROM node:24.21.0-slim AS base
ENV NODE_ENV=production
WORKDIR /app
USER node
# Node is process 1 and handles SIGTERM itself, so that a stop is graceful.

FROM base AS ingest
COPY --from=build --chown=root:root /out/ingest ./
EXPOSE 8080 9101
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:9101/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]

FROM base AS worker
COPY --from=build --chown=root:root /out/worker ./
EXPOSE 9102
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:9102/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]

FROM base AS lookup
COPY --from=build --chown=root:root /out/lookup ./
EXPOSE 8080 9103
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:9103/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]

FROM base AS ops
COPY --from=build --chown=root:root /out/ops ./
ENTRYPOINT ["node", "dist/main.js"]
